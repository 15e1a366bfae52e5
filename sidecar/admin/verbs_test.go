package admin_test

import (
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/admin/admintest"
)

func init() { admin.VerbsOf = admintest.Verbs }
