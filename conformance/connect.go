package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// target finds out whom to ask, and as whom: AWS's environment and files decide as for the SDKs.
// An endpoint on this machine needs neither credentials nor a region.
func (f flags) target(ctx context.Context) (target, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(f.profile))
	if err != nil {
		return target{}, fmt.Errorf("the AWS configuration: %w", err)
	}
	t := target{region: f.region, credentials: loaded.Credentials, slow: f.slow}
	if t.region == "" {
		t.region = loaded.Region
	}
	if f.endpoint == "aws" || (f.endpoint == "" && f.cost) {
		t.live = true
		if t.region == "" && f.cost {
			t.region = "the region of --region"
			return t, nil
		}
		if t.region == "" {
			return target{}, fmt.Errorf("no region: say --region, or set AWS_REGION")
		}
		t.endpoint = &url.URL{Scheme: "https", Host: "kinesis." + t.region + ".amazonaws.com"}
		return t, nil
	}
	if t.endpoint, err = url.Parse(f.endpoint); err != nil || t.endpoint.Host == "" {
		return target{}, fmt.Errorf("--endpoint %s: want a URL such as http://127.0.0.1:4567, or "+
			"aws",
			f.endpoint)
	}
	t.live = isAWS(t.endpoint.Hostname())
	if t.region == "" {
		t.region = "us-east-1"
	}
	if isLoopback(t.endpoint.Hostname()) && f.profile == "" &&
		os.Getenv("AWS_ACCESS_KEY_ID") == "" {
		t.credentials = aws.NewCredentialsCache(
			credentials.NewStaticCredentialsProvider("000000000000", "conformance", ""))
	}
	if _, err := t.credentials.Retrieve(ctx); err != nil {
		return target{}, fmt.Errorf("no credentials for %s: %w", f.endpoint, err)
	}
	return t, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// isAWS says whether a host is AWS's, by whatever name: nobody spends money by accident.
func isAWS(host string) bool { return awsHost.MatchString(host) }

var awsHost = regexp.MustCompile(`(^|\.)(amazonaws\.com(\.cn)?|api\.aws|on\.aws)$`)
