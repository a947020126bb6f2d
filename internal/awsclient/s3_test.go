package awsclient

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The endpoint, the region and the keys of S3 are those of the AWS CLI. An endpoint that is not
// AWS's has the bucket in the path, and checksums only where they are required.
func TestS3(t *testing.T) {
	const keys = "AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=secret"
	for name, c := range map[string]struct {
		env     string
		options S3Options
		want    string // endpoint region key pathStyle
		err     error
	}{
		"AWS":                {keys + " AWS_REGION=eu-west-3", S3Options{}, " eu-west-3 AKID false", nil},
		"AWS without region": {keys, S3Options{}, "", ErrOptions},
		"nothing":            {"AWS_REGION=eu-west-3", S3Options{}, "", ErrNoS3},
		"a flag": {
			keys,
			S3Options{Endpoint: "http://minio:9000"},
			"http://minio:9000 us-east-1 AKID true", nil,
		},
		"a flag without keys": {"", S3Options{Endpoint: "http://minio:9000"}, "", ErrCredentials},
		"loopback without keys": {
			"",
			S3Options{Endpoint: "http://127.0.0.1:9000"},
			"http://127.0.0.1:9000 us-east-1 runnel true", nil,
		},
		"S3's variable": {
			keys + " AWS_ENDPOINT_URL=http://all:1 AWS_ENDPOINT_URL_S3=http://s3:1",
			S3Options{},
			"http://s3:1 us-east-1 AKID true", nil,
		},
		"the variable of all": {
			keys + " AWS_ENDPOINT_URL=http://all:1",
			S3Options{Region: "r"},
			"http://all:1 r AKID true", nil,
		},
		"an endpoint of AWS": {
			keys + " AWS_REGION=eu-west-3",
			S3Options{Endpoint: "https://s3.eu-west-3.amazonaws.com"},
			"https://s3.eu-west-3.amazonaws.com eu-west-3 AKID false", nil,
		},
		"no URL": {keys, S3Options{Endpoint: "minio:9000"}, "", ErrOptions},
	} {
		t.Run(name, func(t *testing.T) {
			cleanEnvironment(t)
			for pair := range strings.FieldsSeq(c.env) {
				variable, value, _ := strings.Cut(pair, "=")
				t.Setenv(variable, value)
			}
			client, err := S3(t.Context(), c.options)
			if c.err != nil || err != nil {
				if !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
				return
			}
			o := client.Options()
			got, err := o.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			path := "false"
			if o.UsePathStyle {
				path = "true"
			}
			all := strings.Join([]string{aws.ToString(o.BaseEndpoint), o.Region, got.AccessKeyID, path}, " ")
			if all != c.want {
				t.Errorf("%q, want %q", all, c.want)
			}
			required := o.RequestChecksumCalculation == aws.RequestChecksumCalculationWhenRequired &&
				o.ResponseChecksumValidation == aws.ResponseChecksumValidationWhenRequired
			if required != o.UsePathStyle {
				t.Errorf("checksums only where required: %v", required)
			}
		})
	}
	cleanEnvironment(t)
	text := "[profile p]\nregion = eu-west-2\naws_access_key_id = PKEY\naws_secret_access_key = s\n" +
		"endpoint_url = http://profile:1\n"
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := S3(t.Context(), S3Options{Profile: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if o := client.Options(); aws.ToString(o.BaseEndpoint) != "http://profile:1" || o.Region != "eu-west-2" {
		t.Errorf("a profile: %s, %s", aws.ToString(o.BaseEndpoint), o.Region)
	}
}
