// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
)

const gcsScope = "https://www.googleapis.com/auth/devstorage.read_write"

func (b *Bucket) openGCS(ctx context.Context) error {
	keys, err := b.config.credentials("credentials.json")
	if err != nil {
		return err
	}
	b.hide(keys...)
	base, err := b.config.client()
	if err != nil {
		return err
	}
	// Only the key of a service account: other kinds make the library run programs or ask addresses that the file names.
	account, err := google.JWTConfigFromJSON([]byte(keys[0]), gcsScope)
	if err != nil {
		return &Error{Kind: AccessDenied, Op: "open", Detail: "credentials.json is not the key of a service account"}
	}
	// Tokens are fetched for as long as the bucket is open, by the bounded client.
	tokens := account.TokenSource(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, base))
	client, err := gcp.NewHTTPClient(base.Transport, tokens)
	if err != nil {
		return err
	}
	b.objects, err = gcsblob.OpenBucket(ctx, client, b.config.GCS.Bucket, nil)
	return err
}

func (b *Bucket) openAzure(ctx context.Context) error {
	keys, err := b.config.credentials("accountName", "accountKey")
	if err != nil {
		return err
	}
	b.hide(keys[1])
	base, err := b.config.client()
	if err != nil {
		return err
	}
	credential, err := azblob.NewSharedKeyCredential(keys[0], keys[1])
	if err != nil {
		return &Error{Kind: AccessDenied, Op: "open", Detail: "accountKey is not in base64"}
	}
	url := fmt.Sprintf("https://%s.blob.core.windows.net/%s", keys[0], b.config.Azure.Container)
	client, err := container.NewClientWithSharedKeyCredential(url, credential, &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: base,
		Retry:     policy.RetryOptions{MaxRetries: requestTries - 1, MaxRetryDelay: b.patience.RequestPauseMax},
	}})
	if err != nil {
		return err
	}
	b.objects, err = azureblob.OpenBucket(ctx, client, nil)
	return err
}

// cloudAnswer is the HTTP status and the code in an error of these two.
func cloudAnswer(err error) (int, string) {
	var azure *azcore.ResponseError
	if errors.As(err, &azure) {
		return azure.StatusCode, azure.ErrorCode
	}
	var google *googleapi.Error
	if errors.As(err, &google) {
		if google.Code == http.StatusPreconditionFailed {
			return google.Code, "PreconditionFailed"
		}
		return google.Code, ""
	}
	return 0, ""
}
