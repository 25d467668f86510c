// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// mysqlUser is the user that wrote the files on a volume, unless the platform assigns users.
const mysqlUser = int64(999)

// Install is what the operator is told about the pods of its groups, and what goes for those that read too.
type Install struct {
	// Image has the program backup.
	Image string
	// PlatformAssignsIDs leaves user and group to the platform, which refuses pods that name one.
	PlatformAssignsIDs bool
}

// Installed reads the arguments of the operator's Deployment. An image that is named goes before the operator's; who names one need not be
// allowed to read the Deployment.
func Installed(ctx context.Context, kube kubernetes.Interface, named, operatorNamespace string) (Install, error) {
	list, err := kube.AppsV1().Deployments(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: live.Selector})
	switch {
	case err != nil && named != "":
		return Install{Image: named}, nil
	case err != nil:
		return Install{}, fmt.Errorf("%w\n  or name the image with the program backup: --image IMAGE", cli.RightsHint(err, "list", "deployments", operatorNamespace))
	}
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			install := told(container.Args)
			if install.Image == "" {
				continue
			}
			if named != "" {
				install.Image = named
			}
			return install, nil
		}
	}
	if named != "" {
		return Install{Image: named}, nil
	}
	return Install{}, cli.Refused("refused: no operator in namespace %s says which image has the program backup\n  name it: --image IMAGE", operatorNamespace)
}

// told reads the arguments of one container.
func told(args []string) (i Install) {
	for _, arg := range args {
		if image, is := strings.CutPrefix(arg, "--backup-image="); is {
			i.Image = image
		}
		if arg == "--platform-assigns-ids" || arg == "--platform-assigns-ids=true" {
			i.PlatformAssignsIDs = true
		}
	}
	return i
}

// user is nil where the platform assigns one.
func (i Install) user() *int64 {
	if i.PlatformAssignsIDs {
		return nil
	}
	return new(mysqlUser)
}
