package lease_test

import (
	"testing"

	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
)

// The suite against a DynamoDB in memory, with pages of three items.
func TestTable(t *testing.T) {
	leasetest.Run(t, func(*testing.T) lease.DynamoDBAPI { return &leasetest.Memory{PageSize: 3} })
}
