package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runnel-stream/runnel/assign"
	"github.com/runnel-stream/runnel/internal/awsclient"
)

// joinKeys begins the session of a put with the table of its keys.
func joinKeys(ctx context.Context, cfg aws.Config, name string) (*assign.Session, error) {
	table, err := assign.Open(ctx, assign.Config{API: awsclient.DynamoDB(cfg), Table: name})
	if err != nil {
		return nil, tableError(ctx, err)
	}
	session, err := table.Join(ctx)
	return session, tableError(ctx, err)
}

// leaveTimeout is the time to end the session of an interrupted put.
const leaveTimeout = 5 * time.Second

// leaveKeys ends the session.
func leaveKeys(ctx context.Context, session *assign.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return outsideError(session.Close(ctx))
}
