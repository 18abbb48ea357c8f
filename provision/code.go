package provision

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
)

// code is the function's zip file, with the bucket and the key under which it is kept.
type code struct {
	data        []byte
	bucket, key string
	account     string // that owns the bucket
	ours        bool   // the bucket is made when it is needed
}

// sha256Text returns the SHA-256 of a zip file as Lambda writes it.
func sha256Text(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// newCode returns the function's code, which is not sent yet. Its key has its hash, because
// CloudFormation notices new code only by a new key.
func (a *Account) newCode(ctx context.Context, stack string, o *DeployOptions) (*code, error) {
	c := &code{data: o.Code, bucket: o.CodeBucket}
	if c.data == nil {
		c.data = FunctionCode()
	}
	if c.data == nil {
		return nil, fault(weir.Invalid, "function", "",
			"is needed: this build of weir has no code of the function in it, as releases do; "+
				"make function builds it")
	}
	if reason := codeFault(c.data); reason != "" {
		return nil, fault(weir.Invalid, "function", "", reason)
	}
	sum := sha256.Sum256(c.data)
	c.key = codePrefix(stack) + "aggregator-" + hex.EncodeToString(sum[:8]) + ".zip"
	var err error
	if c.account, err = a.id(ctx); err != nil {
		return nil, err
	}
	if c.bucket == "" {
		c.bucket, c.ours = a.codeBucket(c.account), true
	}
	return c, nil
}

// id returns the ID of the account.
func (a *Account) id(ctx context.Context) (string, error) {
	caller, err := a.callers.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", a.classify("", err)
	}
	return aws.ToString(caller.Account), nil
}

// bucketOf returns the bucket with the code of a stack, and the account that owns it.
func (a *Account) bucketOf(ctx context.Context, i *Info) (bucket, account string, err error) {
	if account, err = a.id(ctx); err != nil {
		return "", "", err
	}
	if bucket = i.Parameters[codeBucketParameter]; bucket == "" {
		bucket = a.codeBucket(account) // the first update of a hand-back has removed the parameter
	}
	return bucket, account, nil
}

// codePrefix begins the keys of a stack's objects in the bucket.
func codePrefix(stack string) string { return stack + "/weir-" }

// codeBucket returns the name of the bucket that weir makes for code.
func (a *Account) codeBucket(account string) string {
	return "weir-code-" + account + "-" + a.region
}

// codeFault returns the reason why a file cannot be the function's code.
func codeFault(data []byte) string {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "must be a zip file: " + err.Error()
	}
	if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == "bootstrap" }) {
		return "must be a zip file with the program bootstrap, as make function writes it"
	}
	return ""
}

// send puts the code into its bucket. The bucket's name can be guessed, so each call names the
// account that must own it.
func (a *Account) send(ctx context.Context, c *code) error {
	if c.ours {
		if err := a.ensureBucket(ctx, c); err != nil {
			return err
		}
	}
	_, err := a.objects.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &c.bucket, Key: &c.key, Body: bytes.NewReader(c.data),
		ContentType: aws.String("application/zip"), ExpectedBucketOwner: &c.account,
	})
	return a.bucketError(c.bucket, err)
}

// bucketEvery is the time between two attempts to create a bucket, and bucketAttempts how many more
// than one there are.
const (
	bucketEvery    = 10 * time.Second
	bucketAttempts = 30
)

func (a *Account) ensureBucket(ctx context.Context, c *code) error {
	_, err := a.objects.HeadBucket(ctx,
		&s3.HeadBucketInput{Bucket: &c.bucket, ExpectedBucketOwner: &c.account})
	if _, missing := errors.AsType[*s3types.NotFound](err); !missing {
		return a.bucketError(c.bucket, err)
	}
	in := &s3.CreateBucketInput{Bucket: &c.bucket}
	if a.region != "us-east-1" { // the only region that is no constraint
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{
			LocationConstraint: s3types.BucketLocationConstraint(a.region),
		}
	}
	for attempt := 0; ; attempt++ {
		_, err = a.objects.CreateBucket(ctx, in)
		// S3 takes a while to forget a bucket of the same name that was deleted.
		if attempt == bucketAttempts || err == nil || !strings.Contains(err.Error(), "OperationAborted") {
			break
		}
		if err := a.wait(ctx, bucketEvery); err != nil {
			return a.bucketError(c.bucket, err)
		}
	}
	if _, there := errors.AsType[*s3types.BucketAlreadyOwnedByYou](err); err != nil && !there {
		return a.bucketError(c.bucket, err)
	}
	_, err = a.objects.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
		Bucket: &c.bucket, ExpectedBucketOwner: &c.account,
		PublicAccessBlockConfiguration: &s3types.PublicAccessBlockConfiguration{
			BlockPublicAcls: aws.Bool(true), BlockPublicPolicy: aws.Bool(true),
			IgnorePublicAcls: aws.Bool(true), RestrictPublicBuckets: aws.Bool(true),
		},
	})
	return a.bucketError(c.bucket, err)
}

// bucketError returns an error of a bucket with the bucket's name.
func (a *Account) bucketError(bucket string, err error) error {
	if err == nil {
		return nil
	}
	if isMissingBucket(err) {
		return fault(weir.NotFound, "code_bucket", bucket, "does not exist in region "+a.region)
	}
	e, ok := errors.AsType[*weir.Error](a.classify("", err))
	if ok {
		e.Field, e.Value = "bucket", bucket
	}
	return e
}

func isMissingBucket(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "NoSuchBucket"
}

func isMissingObject(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "NoSuchKey" || api.ErrorCode() == "NotFound")
}

// maxPages bounds the pages that are deleted of a bucket into which something still writes.
const maxPages = 10_000

// empty deletes the objects of a bucket under a prefix, in all their versions, and returns how many
// it deleted. A bucket that does not exist is empty.
func (a *Account) empty(ctx context.Context, bucket, prefix string) (n int, err error) {
	for range maxPages {
		page, err := a.objects.ListObjectVersions(ctx,
			&s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &prefix})
		if isMissingBucket(err) {
			return n, nil
		}
		if err != nil {
			return n, a.bucketError(bucket, err)
		}
		var objects []s3types.ObjectIdentifier
		for i := range page.Versions {
			v := &page.Versions[i]
			objects = append(objects, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for i := range page.DeleteMarkers {
			v := &page.DeleteMarkers[i]
			objects = append(objects, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		if len(objects) == 0 {
			return n, nil
		}
		out, err := a.objects.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &bucket, Delete: &s3types.Delete{Objects: objects, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return n, a.bucketError(bucket, err)
		}
		n += len(objects) - len(out.Errors)
		if len(out.Errors) > 0 {
			first := &out.Errors[0]
			return n, fault(weir.Conflict, "bucket", bucket, "still has "+aws.ToString(first.Key)+
				", which S3 does not delete: "+aws.ToString(first.Message))
		}
	}
	return n, fault(weir.Conflict, "bucket", bucket, "is not empty: something writes to it")
}

// deleteCode deletes all objects of a stack from the bucket of its code, and the bucket if it was
// made for code and is empty then.
func (a *Account) deleteCode(ctx context.Context, i *Info) error {
	bucket, account, err := a.bucketOf(ctx, i)
	if err != nil {
		return err
	}
	if _, err := a.empty(ctx, bucket, codePrefix(i.Name)); err != nil {
		return err
	}
	if bucket != a.codeBucket(account) {
		return nil
	}
	return a.deleteIfEmpty(ctx, bucket)
}

// deleteIfEmpty deletes a bucket, unless it has objects, such as the code of another stack.
func (a *Account) deleteIfEmpty(ctx context.Context, bucket string) error {
	_, err := a.objects.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	if isMissingBucket(err) || err != nil && strings.Contains(err.Error(), "BucketNotEmpty") {
		return nil
	}
	return a.bucketError(bucket, err)
}
