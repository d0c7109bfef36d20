// Calls the core with grpc-go.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	leadintake "example.com/leads/gen/leadintake/v1"
)

// The calls that the connection retries automatically while the core is unreachable.
//
//go:embed service-config.json
var serviceConfig string

type client struct {
	leadintake.LeadIntakeServiceClient
	studio string
}

// reasonOf returns why the service refused; empty when it gave no reason, so that the outcome is unknown.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "leadintake" {
			return info.Reason
		}
	}
	return ""
}

// create creates a lead. The connection retries it while the core is unreachable; the key prevents duplicates.
func (c client) create(request *leadintake.CreateLeadRequest) (*leadintake.CreateLeadResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return c.CreateLead(ctx, request)
}

// all returns every lead, newest first, page by page.
func (c client) all() (leads []*leadintake.Lead, err error) {
	request := &leadintake.ListLeadsRequest{StudioId: c.studio, PageSize: 2}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		page, err := c.ListLeads(ctx, request)
		cancel()
		if err != nil {
			return nil, err
		}
		leads = append(leads, page.Leads...)
		if page.NextPageToken == "" {
			return leads, nil
		}
		request.PageToken = page.NextPageToken
	}
}

func (c client) run() error {
	key := uuid.NewString()
	request := &leadintake.CreateLeadRequest{
		StudioId:       c.studio,
		IdempotencyKey: key,
		DisplayName:    "Grace Hopper",
		Contact:        &leadintake.Contact{Value: &leadintake.Contact_Email{Email: key + "@example.com"}},
	}
	created, err := c.create(request)
	if err != nil {
		return err
	}
	fmt.Println("created", created.Lead.Id)

	again, err := c.create(request)
	if err != nil {
		return err
	}
	if again.Replayed {
		fmt.Println("replayed", again.Lead.Id)
	}

	request.DisplayName = "Grace"
	_, err = c.create(request)
	fmt.Println("refused", reasonOf(err))

	leads, err := c.all()
	if err != nil {
		return err
	}
	fmt.Println("listed", len(leads))
	return nil
}

// presentToken authenticates calls to the core.
func presentToken(
	ctx context.Context, method string, request, answer any,
	connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if token := os.Getenv("CORE_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return invoke(ctx, method, request, answer, connection, options...)
}

func main() {
	connection, err := grpc.NewClient(
		os.Getenv("CORE_ADDRESS"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(presentToken),
		grpc.WithDefaultServiceConfig(serviceConfig),
	)
	if err == nil {
		err = client{leadintake.NewLeadIntakeServiceClient(connection), os.Getenv("STUDIO_ID")}.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed", cmp.Or(reasonOf(err), err.Error()))
		os.Exit(1)
	}
}
