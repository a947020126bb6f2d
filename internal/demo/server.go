package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

// server is the demo's server: a process of its own, so that it can be killed with -9. Except
// for the clients, its methods are called by one goroutine at a time.
type server struct {
	stderr    io.Writer // of the process
	logFormat string
	dir       string // of its data
	shards    int
	endpoint  string // from the first start on
	config    aws.Config
	process   *exec.Cmd // nil if there is none
	lifeline  io.Closer // its standard input; the process ends when it is closed
}

// serverTime is how long the server may take to start or to end.
const serverTime = 30 * time.Second

// open starts the server on a free port of this machine.
func (s *server) open(ctx context.Context) error {
	if err := s.start(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	var err error
	s.config, err = awsclient.Load(ctx, awsclient.Options{Endpoint: s.endpoint})
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	return nil
}

func (s *server) kinesis() *kinesis.Client   { return awsclient.Kinesis(s.config) }
func (s *server) dynamoDB() *dynamodb.Client { return awsclient.DynamoDB(s.config) }

// start runs this program again as the server, and returns when it takes calls.
func (s *server) start(ctx context.Context, addr string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the server: where this program is, is not known: %w", err)
	}
	//nolint:noctx // it ends with its lifeline, which ctx's end does not cut too early
	process := exec.Command(program)
	process.Args = []string{
		os.Args[0], "serve", "--child", "--quiet", "--addr", addr, "--data", s.dir,
		"--stream", stream + ":" + strconv.Itoa(s.shards), "--log-format", s.logFormat,
	}
	process.Stderr = s.stderr
	lifeline, err := process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return errors.Join(err, lifeline.Close())
	}
	if err := process.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the server: %w", err), lifeline.Close())
	}
	s.process, s.lifeline = process, lifeline
	ready := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- strings.TrimSpace(line)
	}()
	waiting, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	select {
	case s.endpoint = <-ready:
		if s.endpoint != "" {
			return nil
		}
		err = errors.New("the server ended before it took a call")
	case <-waiting.Done():
		err = fmt.Errorf("the server does not start: %w", context.Cause(waiting))
	}
	s.kill()
	return err
}

// kill ends the process as kill -9 does, and waits for its end.
func (s *server) kill() {
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()         // its error is that it was killed
	s.process = nil
}

// restart kills the server and starts it again on its data, at the same address. down is called
// between the two.
func (s *server) restart(ctx context.Context, down func()) (took time.Duration, err error) {
	s.kill()
	down()
	began := time.Now()
	err = s.start(ctx, strings.TrimPrefix(s.endpoint, "http://"))
	return time.Since(began), err
}

// close lets the server finish the requests that it has accepted, and waits for its end.
func (s *server) close(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	closeErr := s.lifeline.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.process.Wait() }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTime)
	defer cancel()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("the server ended badly: %w", err)
		}
		return closeErr
	case <-ctx.Done():
		_ = s.process.Process.Kill()
		return fmt.Errorf("the server did not end and was killed: %w", <-ended)
	}
}
