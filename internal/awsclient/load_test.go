package awsclient

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// cleanEnvironment takes every AWS setting of this machine away.
func cleanEnvironment(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // so that it comes back after the test
			_ = os.Unsetenv(name)
		}
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

const (
	awsKeys  = "AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=secret"
	oneLocal = "http://localhost:4567"
	remote   = "http://runnel.example:4567"
)

// loadCase: want is "Kinesis endpoint, region, access key; DynamoDB the same".
type loadCase struct {
	name, env, files string
	options          Options
	want             string
	err              error
}

var loadCases = []loadCase{
	{name: "nothing", err: ErrNowhere},
	{name: "a region alone", options: Options{Region: "eu-west-1"}, err: ErrNowhere},
	{
		name: "--local", options: Options{Local: true},
		want: LocalEndpoint + ", us-east-1, runnel; " + LocalEndpoint + ", us-east-1, runnel",
	},
	{
		name: "--local with a world", options: Options{Local: true, Region: "eu-west-1"},
		env: "AWS_ACCESS_KEY_ID=111122223333 AWS_SECRET_ACCESS_KEY=x AWS_REGION=us-west-2",
		want: LocalEndpoint + ", eu-west-1, 111122223333; " +
			LocalEndpoint + ", eu-west-1, 111122223333",
	},
	{
		name: "a flag goes before the environment", options: Options{Endpoint: oneLocal},
		env:  "AWS_ENDPOINT_URL=http://127.0.0.1:1 AWS_ENDPOINT_URL_KINESIS=http://127.0.0.1:2",
		want: oneLocal + ", us-east-1, runnel; " + oneLocal + ", us-east-1, runnel",
	},
	{
		name: "two flags", options: Options{Endpoint: oneLocal, DynamoDBEndpoint: "http://[::1]:8000"},
		want: oneLocal + ", us-east-1, runnel; http://[::1]:8000, us-east-1, runnel",
	},
	{
		name: "the environment", env: "AWS_ENDPOINT_URL=http://127.0.0.1:1",
		want: "http://127.0.0.1:1, us-east-1, runnel; http://127.0.0.1:1, us-east-1, runnel",
	},
	{
		name: "the environment by service", env: "AWS_ENDPOINT_URL=http://127.0.0.1:1 " +
			"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:2",
		want: "http://127.0.0.1:1, us-east-1, runnel; http://127.0.0.1:2, us-east-1, runnel",
	},
	{
		name: "the files", files: "[profile p]\nendpoint_url = http://127.0.0.1:3\nregion = r-1\n",
		options: Options{Profile: "p"},
		want:    "http://127.0.0.1:3, r-1, runnel; http://127.0.0.1:3, r-1, runnel",
	},
	{
		name: "a profile's keys go before the environment's", env: awsKeys,
		options: Options{Profile: "p", Local: true},
		files:   "[profile p]\naws_access_key_id = PKEY\naws_secret_access_key = x\n",
		want:    LocalEndpoint + ", us-east-1, PKEY; " + LocalEndpoint + ", us-east-1, PKEY",
	},
	{
		name: "AWS", env: awsKeys + " AWS_REGION=eu-west-1",
		want: ", eu-west-1, AKID; , eu-west-1, AKID",
	},
	{name: "AWS without a region", env: awsKeys, err: ErrOptions},
	{
		name: "a remote server", env: awsKeys + " AWS_REGION=eu-west-1",
		options: Options{Endpoint: remote},
		want:    remote + ", eu-west-1, AKID; " + remote + ", eu-west-1, AKID",
	},
	{
		name: "a remote server without credentials", options: Options{Endpoint: remote},
		env: "AWS_REGION=eu-west-1", err: ErrCredentials,
	},
	{
		name: "streams here, DynamoDB nowhere", env: "AWS_ENDPOINT_URL_KINESIS=" + oneLocal,
		want: oneLocal + ", us-east-1, runnel; , , !" + ErrNowhere.Error(),
	},
	{
		name: "streams here, DynamoDB at AWS", env: "AWS_ENDPOINT_URL_KINESIS=" + oneLocal + " " +
			awsKeys + " AWS_REGION=eu-west-1",
		want: oneLocal + ", eu-west-1, AKID; , eu-west-1, AKID",
	},
	{name: "both flags", options: Options{Local: true, Endpoint: oneLocal}, err: ErrOptions},
	{name: "no URL", options: Options{Endpoint: "localhost:4567"}, err: ErrOptions},
	{name: "no profile", options: Options{Local: true, Profile: "absent"}, err: ErrOptions},
}

func TestLoad(t *testing.T) {
	for _, c := range loadCases {
		t.Run(c.name, func(t *testing.T) {
			cleanEnvironment(t)
			for _, setting := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			if c.files != "" {
				err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(c.files), 0o600)
				if err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := Load(t.Context(), c.options)
			if !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if got := whereTo(t, cfg); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// whereTo asks the clients themselves.
func whereTo(t *testing.T, cfg aws.Config) string {
	t.Helper()
	one, two := Kinesis(cfg).Options(), DynamoDB(cfg, WithoutRetries()).Options()
	if got := two.Retryer.MaxAttempts(); got != 1 {
		t.Errorf("WithoutRetries makes %d attempts", got)
	}
	if got := one.Retryer.MaxAttempts(); got != 3 {
		t.Errorf("by default there are %d attempts", got)
	}
	key := func(provider aws.CredentialsProvider) string {
		keys, err := provider.Retrieve(t.Context())
		if errors.Is(err, ErrNowhere) {
			return "!" + ErrNowhere.Error()
		}
		if err != nil {
			return err.Error()
		}
		return keys.AccessKeyID
	}
	return strings.Join([]string{
		aws.ToString(one.BaseEndpoint), one.Region,
		key(one.Credentials),
	}, ", ") + "; " + strings.Join([]string{
		aws.ToString(two.BaseEndpoint), two.Region, key(two.Credentials),
	}, ", ")
}

// Metrics go where the stream is on this machine, unless the environment says otherwise: not to AWS
// by accident.
func TestCloudWatchEndpoint(t *testing.T) {
	for _, c := range []struct {
		env, endpoint, want string
	}{
		{env: "AWS_ENDPOINT_URL=http://127.0.0.1:1", want: "http://127.0.0.1:1, us-east-1, runnel"},
		{env: "AWS_ENDPOINT_URL_KINESIS=http://127.0.0.1:1", want: "http://127.0.0.1:1, us-east-1, runnel"},
		{
			env:  "AWS_ENDPOINT_URL_KINESIS=http://127.0.0.1:1 AWS_ENDPOINT_URL_CLOUDWATCH=http://127.0.0.1:2",
			want: "http://127.0.0.1:2, us-east-1, runnel",
		},
		{env: "AWS_ENDPOINT_URL=http://127.0.0.1:1", endpoint: oneLocal, want: oneLocal + ", us-east-1, runnel"},
		{env: awsKeys + " AWS_REGION=eu-west-1", want: "aws, eu-west-1, AKID"},
		{
			env:  awsKeys + " AWS_REGION=eu-west-1 AWS_ENDPOINT_URL_CLOUDWATCH=http://127.0.0.1:2",
			want: "http://127.0.0.1:2, eu-west-1, AKID",
		},
	} {
		t.Run(c.env, func(t *testing.T) {
			cleanEnvironment(t)
			for _, setting := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			cfg, err := Load(t.Context(), Options{Endpoint: c.endpoint})
			if err != nil {
				t.Fatal(err)
			}
			o := CloudWatch(cfg).Options()
			keys, err := o.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := cmp.Or(aws.ToString(o.BaseEndpoint), "aws") + ", " + o.Region + ", " + keys.AccessKeyID
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestNowhereSaysBothWaysOut(t *testing.T) {
	cleanEnvironment(t)
	_, err := Load(t.Context(), Options{})
	for _, way := range []string{"--local", "--endpoint", "AWS_ENDPOINT_URL", "AWS_PROFILE"} {
		if err == nil || !strings.Contains(err.Error(), way) {
			t.Errorf("%v: does not name %s", err, way)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"http://127.0.0.1:4567": true, "https://localhost": true, "http://LOCALHOST.:1": true,
		"http://a.localhost:80/x": true, "http://[::1]:4567": true, "http://127.8.9.1": true,
		"http://[::ffff:127.0.0.1]:1": true,
		"":                            false, "http://10.0.0.1": false, "http://localhost.example": false,
		"http://0.0.0.0:4567": false, "://": false, "http://127.0.0.1.example": false,
	} {
		if got := IsLoopback(endpoint); got != want {
			t.Errorf("%q: %v, want %v", endpoint, got, want)
		}
	}
}
