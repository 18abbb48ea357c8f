// Package archive keeps the objects of an archive in an S3 bucket. Package aggregator makes the
// objects and reads them.
package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// Archive is an archive in a bucket. All methods may be called concurrently.
type Archive struct {
	Location

	client *s3.Client
}

// callTimeout bounds a call, with its attempts.
const callTimeout = time.Minute

// Open returns the archive at a location. It sends nothing yet.
func Open(ctx context.Context, l *Location) (*Archive, error) {
	cfg, err := awsconfig.Load(ctx, l.Region, l.local)
	if err != nil {
		return nil, &weir.Error{
			Code: weir.Invalid, Field: "archive", Reason: "the configuration of the AWS SDK cannot be loaded",
			Err: err,
		}
	}
	if cfg.Credentials != nil && !l.local {
		cfg.Credentials = &chainCredentials{chain: cfg.Credentials}
	}
	if cfg.Region == "" {
		return nil, invalid("archive.region", "",
			"is not set: give it in the archive's URL (?region=eu-central-1) or in AWS_REGION")
	}
	return &Archive{Location: *l, client: s3.NewFromConfig(cfg, func(o *s3.Options) {
		if l.Endpoint != "" {
			o.BaseEndpoint, o.UsePathStyle = &l.Endpoint, true
		}
	})}, nil
}

// Check returns an error for a bucket that does not exist or is elsewhere, so that a mistake
// shows before the first object. A bucket that the credentials may write to and not list passes.
func (a *Archive) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &a.Bucket})
	if err = a.classify("", err); errors.Is(err, weir.PermissionDenied) && !isCredentials(err) {
		return nil
	}
	return err
}

// Put writes an object of gzip-compressed lines of JSON, with a checksum that S3 verifies.
func (a *Archive) Put(ctx context.Context, key string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &a.Bucket, Key: new(a.Prefix + key), Body: bytes.NewReader(body),
		ContentType: new("application/x-ndjson"), ContentEncoding: new("gzip"),
	})
	return a.classify(key, err)
}

// Read returns an object. Its bytes are those that were put, also if they are compressed. If S3
// does not have it or cannot read it at present, the error has code [weir.NotFound] or
// [weir.Unsupported]; any other error is not of this object alone.
func (a *Archive) Read(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := a.client.GetObject(ctx,
		&s3.GetObjectInput{Bucket: &a.Bucket, Key: new(a.Prefix + key)})
	if err != nil {
		return nil, a.classify(key, err)
	}
	return out.Body, nil
}

// chainCredentials are the credentials of the SDK's own chain. Their errors can be told from
// those of the bucket.
type chainCredentials struct{ chain aws.CredentialsProvider }

func (c *chainCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.chain.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = &credentialsError{err}
	}
	return found, err
}

// credentialsError is the error of a call that was not sent because there were no credentials.
type credentialsError struct{ error }

func (c *credentialsError) Unwrap() error { return c.error }

func isCredentials(err error) bool {
	_, ok := errors.AsType[*credentialsError](err)
	return ok
}
