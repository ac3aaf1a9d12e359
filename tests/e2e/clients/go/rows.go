package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
)

// rows are the cases of the other clients that have a form here. Left out is what net/http itself refuses or has no way to send:
// malformed heads, resets by hand, and upgrades.
var rows = []row{
	{"get", func() {
		got := newClient().get("/")
		expect(got.StatusCode, 200)
		expect(got.text(), greeting)
		expect(got.ContentLength, 17)
	}},
	{"head", func() {
		got := newClient().ask(newRequest("HEAD", "/bytes/1000", nil))
		expect(got.Header.Get("Content-Length"), "1000")
		expect(len(got.body), 0)
	}},
	{"post-with-length", func() {
		got := newClient().ask(newRequest("POST", "/echo", strings.NewReader("some\r\nbody\x00")))
		expect(got.text(), "some\r\nbody\x00")
		expect(got.ContentLength, 11)
	}},
	{"post-of-unknown-length", func() {
		client := newClient()
		expect(client.ask(newRequest("POST", "/echo", unsized([]byte("hello")))).text(), "hello")
		expectIn(client.ask(newRequest("POST", "/head", unsized([]byte("hello")))).text(), "\r\nTransfer-Encoding: chunked\r\n")
	}},
	{"put-of-nothing", func() {
		got := newClient().ask(newRequest("PUT", "/head", http.NoBody))
		expectIn(strings.ToLower(got.text()), "put /head http/1.1\r\n", "\r\ncontent-length: 0\r\n")
	}},
	{"delete-with-a-body", func() {
		expect(newClient().ask(newRequest("DELETE", "/echo", strings.NewReader("why"))).text(), "why")
	}},
	{"options-of-the-server", func() {
		request := newRequest("OPTIONS", "", nil)
		request.URL.Opaque = "*"
		expect(newClient().ask(request).StatusCode, 200)
	}},
	{"methods", func() {
		client := newClient()
		for _, method := range []string{"PATCH", "PROPFIND", "BREW"} {
			expectIn(client.ask(newRequest(method, "/head", nil)).text(), method+" /head HTTP/1.1\r\n")
		}
	}},
	{"expect-continue", func() {
		request, continued := newRequest("POST", "/echo", strings.NewReader("body")), false
		request.Header.Set("Expect", "100-continue")
		trace := &httptrace.ClientTrace{Got100Continue: func() { continued = true }}
		got := newClient().ask(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
		expect(got.text(), "body")
		expect(continued, true)
	}},
	{"expect-refused", func() {
		behave("early=1&status=413")
		client, body := newClient(), &counted{Reader: bytes.NewReader(pattern(1000))}
		request := newRequest("POST", "/", body)
		request.Header.Set("Expect", "100-continue")
		got := client.ask(request)
		expect(got.StatusCode, 413)
		expect(body.count.Load(), 0)
		behave("reset=1")
		client.hello()
		expect(client.opened.Load(), 1)
	}},
	{"an-answer-before-the-upload-is-over", func() {
		for round := 0; round < 5; round++ {
			behave("early=1&status=413&close=1&times=1")
			got := newClient().ask(newRequest("POST", "/", bytes.NewReader(pattern(5_000_000))))
			expect(got.StatusCode, 413)
			expect(got.text(), greeting)
		}
	}},
	{"early-hints", func() {
		request, hints := newRequest("GET", "/early-hints", nil), ""
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints += fmt.Sprint(code, header.Get("Link"))
			return nil
		}}
		got := newClient().ask(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
		expect(hints, "103</style.css>; rel=preload")
		expect(got.text(), greeting)
	}},
	{"trailers-both-ways", func() {
		request := newRequest("POST", "/echo", unsized([]byte("hello")))
		request.Trailer = http.Header{"X-Sum": {"42"}}
		got := newClient().ask(request)
		expect(got.text(), "hello")
		expect(got.Trailer.Get("X-Sum"), "42")
		got = newClient().get("/chunked/1000?trailer=1")
		expectBytes(got.body, pattern(1000))
		expect(got.Trailer.Get("X-Trailer"), "fake-1")
	}},
	{"answers-without-a-body", func() {
		client := newClient()
		for _, status := range []int{204, 304, 204, 200} {
			got := client.get(fmt.Sprintf("/status/%d", status))
			expect(got.StatusCode, status)
			expect(got.text() == greeting, status == 200)
		}
		expect(client.opened.Load(), 1)
	}},
	{"every-status", func() {
		client := newClient()
		for _, status := range []int{201, 206, 404, 418, 429, 500, 503, 599, 999} {
			expect(client.get(fmt.Sprintf("/status/%d", status)).StatusCode, status)
		}
	}},
	{"one-connection-for-many-requests", func() {
		client, before := newClient(), stats()["requests"]
		for length := 0; length < 20; length++ {
			expectBytes(client.get(fmt.Sprintf("/bytes/%d", length)).body, pattern(length))
		}
		expect(client.opened.Load(), 1)
		expect(stats()["requests"], before+20)
	}},
	{"many-requests-at-once-on-one-connection", func() {
		client := newClient()
		client.hello()
		atOnce(100, func(number int) {
			expectBytes(client.get(fmt.Sprintf("/bytes/%d", number*997)).body, pattern(number*997))
		})
		expect(client.opened.Load(), 1)
	}},
	{"more-at-once-than-there-may-be-streams", func() {
		client := newClient()
		client.hello()
		atOnce(300, func(number int) {
			body := fmt.Sprint(number)
			expect(client.ask(newRequest("POST", "/echo", strings.NewReader(body))).text(), body)
		})
	}},
	{"the-authority-names-the-host", func() {
		request := newRequest("GET", "/head", nil)
		request.Host = "origin.test"
		expectIn(strings.ToLower(newClient().ask(request).text()), "\r\nhost: origin.test\r\n")
	}},
	{"headers", func() {
		request := newRequest("GET", "/head", nil)
		request.Header["X-Many"] = []string{"one", "two, three"}
		request.Header["X-Forwarded-For"] = []string{"1.2.3.4"}
		request.AddCookie(&http.Cookie{Name: "a", Value: "1"})
		request.AddCookie(&http.Cookie{Name: "b", Value: "2"})
		got := newClient().ask(request).text()
		expectIn(got, "\r\nx-many: one\r\nx-many: two, three\r\n", "\r\ncookie: a=1; b=2\r\n", "\r\nX-Forwarded-Proto: https\r\n")
		expectIn(got, "\r\nVia: 2.0 evenkeel\r\n", "\r\naccept-encoding: gzip\r\n")
		expect(strings.Contains(got, "1.2.3.4"), false)
	}},
	{"compressed-bodies", func() {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		writer.Write(pattern(100_000))
		must(writer.Close())
		request := newRequest("POST", "/echo", bytes.NewReader(packed.Bytes()))
		request.Header.Set("Content-Encoding", "gzip")
		expectBytes(newClient().ask(request).body, packed.Bytes())
	}},
	{"packed-answers", func() {
		client := newClient()
		for length, isPacked := range map[int]bool{100_000: true, 10: false} {
			got := client.get(fmt.Sprintf("/packed/bytes/%d", length))
			expect(got.Uncompressed, isPacked)
			expectBytes(got.body, pattern(length))
		}
	}},
	{"redirects", func() {
		client := newClient()
		expectBytes(client.get("/moved").body, pattern(5))
		got := client.ask(newRequest("POST", "/moved-for-good", strings.NewReader("the body again")))
		expect(got.text(), "the body again")
		expect(got.Request.URL.Path, "/echo")
		expect(client.opened.Load(), 1)
	}},
	{"cookies-of-an-answer", func() {
		cookies := newClient().get("/cookies").Cookies()
		expect(len(cookies), 2)
		expect(cookies[0].String()+cookies[1].String(), "a=1b=2")
	}},
	{"large-heads", func() {
		client := newClient()
		large := func(length int) *http.Request {
			request := newRequest("GET", "/", nil)
			request.Header.Set("X-Large", strings.Repeat("x", length))
			return request
		}
		expect(client.ask(large(30_000)).StatusCode, 200)
		// It has been told how much may be in a head, and sends no more.
		_, err := client.try(large(33_000))
		expect(err != nil && strings.Contains(err.Error(), "larger than peer's advertised limit"), true)
		expect(client.get("/"+strings.Repeat("p", 20_000)).StatusCode, 200)
		expect(client.opened.Load(), 1)
	}},
	{"ten-megabytes-up", func() {
		client := newClient()
		for _, body := range []io.Reader{bytes.NewReader(pattern(tenMegabytes)), unsized(pattern(tenMegabytes))} {
			expect(client.ask(newRequest("POST", "/count", body)).text(), strconv.Itoa(tenMegabytes))
		}
	}},
	{"ten-megabytes-down", func() {
		client := newClient()
		for _, framing := range []string{"bytes", "chunked", "close"} {
			expectBytes(client.get(fmt.Sprintf("/%s/%d", framing, tenMegabytes)).body, pattern(tenMegabytes))
		}
	}},
	{"ten-megabytes-both-ways-at-once", func() {
		got := newClient().ask(newRequest("POST", "/echo", bytes.NewReader(pattern(tenMegabytes))))
		expectBytes(got.body, pattern(tenMegabytes))
	}},
	{"a-slow-backend", func() {
		expectBytes(newClient().get("/bytes/50?piece=10&every=10").body, pattern(50))
		expect(newClient().get("/delay/50").text(), greeting)
	}},
	{"a-reader-that-pauses-keeps-nobody-waiting", func() {
		client := newClient()
		response, err := client.Do(newRequest("GET", fmt.Sprintf("/bytes/%d", tenMegabytes), nil))
		must(err)
		defer response.Body.Close()
		for round := 0; round < 5; round++ {
			client.hello()
		}
		body, err := io.ReadAll(response.Body)
		must(err)
		expectBytes(body, pattern(tenMegabytes))
		expect(client.opened.Load(), 1)
	}},
	{"an-upload-that-is-given-up", func() {
		client, before := newClient(), stats()
		ctx, cancel := context.WithCancel(context.Background())
		body, writer := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			_, err := client.Do(newRequest("POST", "/", body).WithContext(ctx))
			ended <- err
		}()
		_, err := writer.Write(pattern(200_000))
		must(err)
		until("half of it is there", func(now map[string]int) bool { return now["bytes_in"] > before["bytes_in"]+100_000 })
		cancel()
		expect(errors.Is(<-ended, context.Canceled), true)
		untilAborted(before, 1)
		client.hello()
		expect(client.opened.Load(), 1)
	}},
	{"a-download-that-is-given-up", func() {
		client := newClient()
		for _, framing := range []string{"bytes", "chunked"} {
			before := stats()
			response, err := client.Do(newRequest("GET", "/"+framing+"/1000000000000", nil))
			must(err)
			expect(response.ProtoMajor, 2)
			_, err = io.CopyN(io.Discard, response.Body, 100_000)
			must(err)
			must(response.Body.Close())
			untilAborted(before, 1)
			client.hello()
		}
		expect(client.opened.Load(), 1)
	}},
	{"a-request-that-is-given-up", func() {
		behave("fault=hang&times=1")
		client, before := newClient(), stats()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			until("the backend has it", func(now map[string]int) bool { return now["requests"] > before["requests"] })
			cancel()
		}()
		_, err := client.try(newRequest("GET", "/", nil).WithContext(ctx))
		expect(errors.Is(err, context.Canceled), true)
		untilAborted(before, 1)
		client.hello()
		expect(client.opened.Load(), 1)
	}},
	{"cut-answers", func() {
		client := newClient()
		for _, one := range []string{
			"/bytes/1000 close-mid-body", "/bytes/1000 reset-mid-body", "/chunked/1000 close-mid-body",
			"/chunked/1000 reset-mid-body", "/ length-too-long",
		} {
			path, fault, _ := strings.Cut(one, " ")
			behave("fault=" + fault + "&times=1")
			_, err := client.try(newRequest("GET", path, nil))
			expect(err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR"), true)
			client.hello()
		}
		expect(client.opened.Load(), 1)
	}},
	{"bad-backends", func() {
		client := newClient()
		for _, fault := range []string{"close-unanswered", "reset-mid-head", "two-lengths", "garbage", "bare-line-feeds"} {
			behave("fault=" + fault)
			got := client.ask(newRequest("POST", "/", strings.NewReader("x")))
			expect(got.StatusCode, 502)
			expect(got.Header.Get("Proxy-Status") != "", true)
		}
		expect(client.opened.Load(), 1)
	}},
	{"tls-versions-and-resumption", func() {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client := newClient(func(config *tls.Config) {
				config.MinVersion, config.MaxVersion = version, version
				config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
			})
			for round := 0; round < 5; round++ {
				state := client.get("/").TLS
				expect(state.Version, version)
				expect(state.NegotiatedProtocol, "h2")
				expect(state.DidResume, round > 0)
				client.transport.CloseIdleConnections()
			}
			expect(client.opened.Load(), 5)
		}
	}},
	{"an-unknown-issuer", func() {
		_, err := newClient(func(config *tls.Config) { config.RootCAs = x509.NewCertPool() }).try(newRequest("GET", "/", nil))
		var unknown x509.UnknownAuthorityError
		expect(errors.As(err, &unknown), true)
	}},
	{"a-wrong-name", func() {
		_, err := newClient(func(config *tls.Config) { config.ServerName = "elsewhere.test" }).try(newRequest("GET", "/", nil))
		var wrong x509.HostnameError
		expect(errors.As(err, &wrong), true)
	}},
}
