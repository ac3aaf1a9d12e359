// What grpc-go's own interop programs have no case for: compressed messages, and a stream that is silent for long.
// Run by grpc_interop.py.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

type service struct{ pb.UnimplementedTestServiceServer }

func (service) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if err := grpc.SetSendCompressor(ctx, gzip.Name); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Payload: in.Payload}, nil
}

func (service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
			return err
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	role, address := os.Args[1], "127.0.0.1:"+os.Args[2]
	if role == "serve" {
		listener, err := net.Listen("tcp", address)
		must(err)
		server := grpc.NewServer()
		pb.RegisterTestServiceServer(server, service{})
		must(server.Serve(listener))
		return
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	client := pb.NewTestServiceClient(connection)
	payload := &pb.Payload{Body: bytes.Repeat([]byte("compressible "), 20000)}
	switch role {
	case "compressed":
		for round := 0; round < 10; round++ {
			out, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{Payload: payload}, grpc.UseCompressor(gzip.Name))
			must(err)
			if !bytes.Equal(out.Payload.Body, payload.Body) {
				must(fmt.Errorf("another body came back"))
			}
		}
	case "silent":
		pause, err := time.ParseDuration(os.Args[3])
		must(err)
		stream, err := client.FullDuplexCall(context.Background())
		must(err)
		for round := 0; round < 2; round++ {
			must(stream.Send(&pb.StreamingOutputCallRequest{Payload: payload}))
			_, err := stream.Recv()
			must(err)
			if round == 0 {
				time.Sleep(pause)
			}
		}
		must(stream.CloseSend())
		if _, err := stream.Recv(); err != io.EOF {
			must(fmt.Errorf("it has ended with %v", err))
		}
	}
}
