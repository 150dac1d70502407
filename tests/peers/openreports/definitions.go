// Package openreports names the module whose files a scenario installs.
package openreports

import _ "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
