package pages

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// mute is a client that does not say its endpoint.
type mute struct{ KinesisAPI }

// The limits are AWS's unless the endpoint is a loopback address, or the user names a rate.
func TestLimitsOf(t *testing.T) {
	at := func(endpoint string) *kinesis.Client {
		return kinesis.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint})
	}
	for name, c := range map[string]struct {
		client KinesisAPI
		rate   float64
		want   Limits
	}{
		"AWS":                {kinesis.NewFromConfig(aws.Config{Region: "us-east-1"}), 0, AWS},
		"a name":             {at("https://kinesis.example"), 0, AWS},
		"this machine's":     {at("http://10.0.0.1:4567"), 0, AWS},
		"no loopback name":   {at("http://localhost.example"), 0, AWS},
		"unknown":            {mute{at("http://127.0.0.1")}, 0, AWS},
		"none":               {nil, 0, AWS},
		"127.0.0.1":          {at("http://127.0.0.1:4567"), 0, Limits{}},
		"127.9.9.9, TLS":     {at("https://127.9.9.9"), 0, Limits{}},
		"::1":                {at("http://[::1]:4567"), 0, Limits{}},
		"localhost":          {at("http://localhost:4567"), 0, Limits{}},
		"a rate at loopback": {at("http://127.0.0.1"), 5, AWS},
		"a low rate":         {at("https://kinesis.example"), 1, Limits{Calls: 1, Bytes: 2 << 20}},
		"a high rate":        {at("https://kinesis.example"), 50, Limits{Calls: 50, Bytes: 20 << 20}},
	} {
		if got := LimitsOf(c.client, c.rate); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
