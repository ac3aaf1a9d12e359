// Go in front of evenkeel over HTTP/2: what is built of this folder makes with `http2 PORT BACKEND_PORT CA_FILE` one check after the other
// and writes a line of JSON for each. Built and run by `clients` in the e2e tests. Standard library only.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	patience     = 20 * time.Second // nothing on loopback takes longer
	tenMegabytes = 10_000_000
	greeting     = "Hello from fake-1"
)

var (
	origin, fakeURL string
	roots           = x509.NewCertPool()
)

type row struct {
	name   string
	action func()
}

// client is a net/http client with connections of its own, which it counts.
type client struct {
	*http.Client
	transport *http.Transport
	opened    atomic.Int32
}

func newClient(change ...func(*tls.Config)) *client {
	config := &tls.Config{RootCAs: roots}
	for _, one := range change {
		one(config)
	}
	made := &client{transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, ExpectContinueTimeout: patience}}
	dialer := net.Dialer{Timeout: patience}
	made.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		made.opened.Add(1)
		return dialer.DialContext(ctx, network, strings.Replace(strings.TrimPrefix(origin, "https://"), "localhost", "127.0.0.1", 1))
	}
	made.Client = &http.Client{Transport: made.transport, Timeout: patience}
	return made
}

// answer is what came of one request: everything of it.
type answer struct {
	*http.Response
	body []byte
}

func (a answer) text() string { return string(a.body) }

// try makes the request and reads the whole answer, which has to be one of HTTP/2.
func (c *client) try(request *http.Request) (answer, error) {
	response, err := c.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	expect(response.ProtoMajor, 2)
	body, err := io.ReadAll(response.Body)
	return answer{response, body}, err
}

func (c *client) ask(request *http.Request) answer {
	got, err := c.try(request)
	must(err)
	return got
}

func (c *client) get(path string) answer { return c.ask(newRequest("GET", path, nil)) }

func (c *client) hello() { expect(c.get("/next").text(), greeting) }

func newRequest(method, path string, body io.Reader) *http.Request {
	request, err := http.NewRequest(method, origin+path, body)
	must(err)
	return request
}

// unsized hides how long a body is.
func unsized(body []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(body)} }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect[T comparable](left, right T) {
	if left != right {
		panic(fmt.Sprintf("%.300v instead of %.300v", left, right))
	}
}

func expectBytes(left, right []byte) {
	if !bytes.Equal(left, right) {
		panic(fmt.Sprintf("%d bytes (%x) instead of %d bytes", len(left), sha256.Sum256(left), len(right)))
	}
}

func expectIn(text string, parts ...string) {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			panic(fmt.Sprintf("no %q in %q", part, text))
		}
	}
}

// pattern is the bytes that a fake sends.
func pattern(length int) []byte {
	cycle := []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY")
	return bytes.Repeat(cycle, length/len(cycle)+1)[:length]
}

// direct asks the backend itself.
func direct(method, query string) string {
	request, err := http.NewRequest(method, fakeURL+query, nil)
	must(err)
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(err)
	expect(response.StatusCode, 200)
	return string(body)
}

func behave(query string) { direct("POST", "?"+query) }

func stats() map[string]int {
	counts := map[string]int{}
	scanner := bufio.NewScanner(strings.NewReader(direct("GET", "")))
	for scanner.Scan() {
		name, value, _ := strings.Cut(scanner.Text(), "=")
		if number, err := strconv.Atoi(value); err == nil {
			counts[name] = number
		}
	}
	return counts
}

// until waits until the backend's counters fulfil the condition.
func until(what string, condition func(map[string]int) bool) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		now := stats()
		if condition(now) {
			return
		}
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("not in time: %s; %v", what, now))
		}
	}
}

// untilAborted waits until so many more have been aborted than before.
func untilAborted(before map[string]int, more int) {
	until("the abort is seen", func(now map[string]int) bool { return now["aborted"] == before["aborted"]+more })
}

// counted counts what is read of it.
type counted struct {
	io.Reader
	count atomic.Int32
}

func (c *counted) Read(into []byte) (int, error) {
	length, err := c.Reader.Read(into)
	c.count.Add(int32(length))
	return length, err
}

// atOnce does something so many times at the same time.
func atOnce(times int, action func(int)) {
	var all sync.WaitGroup
	failed := make(chan any, times)
	for number := 0; number < times; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			defer func() {
				if why := recover(); why != nil {
					failed <- why
				}
			}()
			action(number)
		}(number)
	}
	all.Wait()
	if len(failed) > 0 {
		panic(<-failed)
	}
}

// outcome makes one check; what is wrong if it failed.
func outcome(action func()) (why string) {
	defer func() {
		if cause := recover(); cause != nil {
			why = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	behave("reset=1")
	action()
	// Whatever happened, the next one must not feel it.
	behave("reset=1")
	newClient().hello()
	return ""
}

func main() {
	origin, fakeURL = "https://localhost:"+os.Args[2], "http://127.0.0.1:"+os.Args[3]+"/_fake"
	pem, err := os.ReadFile(os.Args[4])
	must(err)
	expect(roots.AppendCertsFromPEM(pem), true)
	out := json.NewEncoder(os.Stdout)
	for _, one := range rows {
		why := outcome(one.action)
		must(out.Encode(map[string]any{"check": one.name, "ok": why == "", "why": why}))
	}
	must(out.Encode(map[string]any{"done": true}))
}
