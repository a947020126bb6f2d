package lease_test

import (
	"testing"

	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
	"github.com/runnel-stream/runnel/runneltest"
)

// The suite against our own server, through the AWS SDK.
func TestTableOnServer(t *testing.T) {
	server := runneltest.NewServer(t)
	leasetest.Run(t, func(*testing.T) lease.DynamoDBAPI { return server.DynamoDB() })
}
