// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

// requestTries is how often one request is tried; a piece of an upload is one request.
const requestTries = 6

func (b *Bucket) openS3(ctx context.Context) error {
	c := b.config
	keys, err := c.credentials("accessKeyID", "secretAccessKey")
	if err != nil {
		return err
	}
	token, err := c.credential("sessionToken")
	if err != nil {
		return err
	}
	b.hide(append(keys, token)...)
	client, err := c.client()
	if err != nil {
		return err
	}
	// Servers other than Amazon's seldom know the newer checksums; TLS checks the pieces, and our digests check the whole.
	checksums, validation := aws.RequestChecksumCalculationWhenSupported, aws.ResponseChecksumValidationWhenSupported
	if c.S3.Endpoint != "" {
		checksums, validation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
	}
	config := aws.Config{
		Region:      c.S3.Region,
		Credentials: credentials.NewStaticCredentialsProvider(keys[0], keys[1], token),
		HTTPClient:  client,
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.MaxBackoff = requestTries, b.patience.RequestPauseMax
				o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(untrusted)}, o.Retryables...)
			})
		},
		RequestChecksumCalculation: checksums,
		ResponseChecksumValidation: validation,
	}
	b.s3 = s3.NewFromConfig(config, func(o *s3.Options) {
		o.UsePathStyle = c.S3.Endpoint != ""
		if c.S3.ForcePathStyle != nil {
			o.UsePathStyle = *c.S3.ForcePathStyle
		}
		if c.S3.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.S3.Endpoint)
		}
	})
	b.objects, err = s3blob.OpenBucket(ctx, b.s3, c.S3.Bucket, &s3blob.Options{RequestChecksumCalculation: checksums})
	return err
}

// untrusted prevents another try after an untrusted certificate: that would fail again.
func untrusted(err error) aws.Ternary {
	if classify(err) == UntrustedTLS {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// hide keeps the values out of all texts. A value as short as a word is no secret, and removing it would garble messages.
func (b *Bucket) hide(values ...string) {
	for _, v := range values {
		if len(v) >= 8 {
			b.secrets = append(b.secrets, v)
		}
	}
}
