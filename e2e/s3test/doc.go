// SPDX-License-Identifier: Apache-2.0

package s3test

import _ "github.com/versity/versitygw/embedgw"
