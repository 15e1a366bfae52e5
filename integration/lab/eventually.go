package lab

import (
	"context"
	"time"

	"saltclusterd/integration/patience"
)

// Eventually is patience.Poll.
func Eventually(ctx context.Context, within time.Duration, desc string, cond func(context.Context) error) error {
	return patience.Poll(ctx, within, desc, cond)
}
