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

// target returns the endpoint, region and credentials of the run. The environment and AWS's
// configuration files are read as by the SDKs. An endpoint on this machine needs neither
// credentials nor a region.
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
			return target{}, fmt.Errorf("no region: give --region, or set AWS_REGION")
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

// isAWS reports whether a host belongs to AWS. It knows all of AWS's domains, so that --yes is
// required before a run costs money.
func isAWS(host string) bool { return awsHost.MatchString(host) }

var awsHost = regexp.MustCompile(`(^|\.)(amazonaws\.com(\.cn)?|api\.aws|on\.aws)$`)
