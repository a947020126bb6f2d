package awsclient

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// credentialsTimeout bounds the search for credentials. Its last step asks the metadata service of
// EC2, and outside EC2 packets to that address get no answer.
const credentialsTimeout = 10 * time.Second

// ownKeys returns the keys in the environment or the profile, so that a loopback server sees the
// same account as with any other AWS client. Without such keys it returns noValue. It makes no
// network call. profileOnly ignores the environment: the user has named a profile.
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

// bounded asks a provider for at most credentialsTimeout. Its error names the ways to give
// credentials.
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
