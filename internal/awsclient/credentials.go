package awsclient

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// credentialsTimeout bounds the search for credentials: its last resort is the metadata
// service of EC2, an address that swallows packets elsewhere.
const credentialsTimeout = 10 * time.Second

// ownKeys returns the keys that the environment or the profile holds, so that a loopback
// server sees the same account as from any other AWS client, and otherwise some of no value.
// Nothing is looked up. A profile that was asked for goes before the environment.
func ownKeys(cfg aws.Config, profileOnly bool) aws.CredentialsProvider {
	for _, source := range cfg.ConfigSources {
		var keys aws.Credentials
		switch source := source.(type) {
		case config.EnvConfig:
			if !profileOnly {
				keys = source.Credentials
			}
		case config.SharedConfig:
			keys = source.Credentials
		}
		if keys.HasKeys() {
			return credentials.StaticCredentialsProvider{Value: keys}
		}
	}
	return noValue
}

// bounded asks a provider for as long as credentialsTimeout, and says what to do if there are
// no credentials.
type bounded struct {
	provider aws.CredentialsProvider
	endpoint string
}

func (b bounded) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if b.provider == nil {
		return aws.Credentials{}, b.explain(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	keys, err := b.provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, b.explain(err)
	}
	return keys, nil
}

func (b bounded) explain(cause error) error {
	err := ErrNowhere
	if b.endpoint != "" {
		err = fmt.Errorf("%s: %w", b.endpoint, ErrCredentials)
	}
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
