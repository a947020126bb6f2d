package interop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// dynamoLocal starts Amazon's DynamoDB Local until the test's end and returns its HOST:PORT. The
// process ends with its standard input, so it also ends if the test is killed.
func dynamoLocal(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../.tools/interop/dynamodblocal")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "java", "-Xmx512m",
		"-Djava.library.path="+filepath.Join(dir, "native"), "-cp",
		filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"), "Local")
	var messages bytes.Buffer
	command.Stderr = &messages
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	addr := ""
	for addr == "" && lines.Scan() {
		if port, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			addr = "127.0.0.1:" + port
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() { // reads on, so that the process never waits for a reader
		}
	}()
	t.Cleanup(func() {
		if err := input.Close(); err != nil {
			t.Error(err)
		}
		<-drained
		if err := command.Wait(); err != nil {
			t.Errorf("DynamoDB Local ended: %v\n%s", err, &messages)
		}
	})
	if addr == "" {
		t.Fatal("DynamoDB Local did not say where it listens")
	}
	return addr
}

// object is a JSON object.
type object = map[string]any

// dynamo is a DynamoDB endpoint. The test writes its JSON itself, since an SDK would check requests
// and hide parts of the answers.
type dynamo struct {
	name string
	addr string
	http *http.Client
}

// reply is an endpoint's answer. code is empty unless it is an error.
type reply struct {
	status        int
	code, message string
	body          object
}

// ask makes a signed call.
func (d *dynamo) ask(ctx context.Context, operation string, body any) (reply, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/",
		bytes.NewReader(text))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	hash := sha256.Sum256(text)
	err = v4.NewSigner().SignHTTP(ctx,
		aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey}, request,
		hex.EncodeToString(hash[:]), "dynamodb", "eu-west-1", time.Now())
	if err != nil {
		return reply{}, err
	}
	answer, err := d.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: answer.StatusCode}
	if err := json.Unmarshal(text, &r.body); err != nil {
		return reply{}, fmt.Errorf("%s answered %s to %s: %q: %w", d.name, answer.Status,
			operation, text, err)
	}
	if r.status == http.StatusOK {
		return r, nil
	}
	code, _ := r.body["__type"].(string)
	r.code = code[strings.LastIndexByte(code, '#')+1:]
	for _, name := range []string{"message", "Message"} {
		if text, found := r.body[name].(string); found {
			r.message = text
		}
		delete(r.body, name)
	}
	delete(r.body, "__type")
	return r, nil
}
