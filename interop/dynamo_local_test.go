package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

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
