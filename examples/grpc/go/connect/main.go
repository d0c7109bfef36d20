// Calls the core with connect-go, over gRPC.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	leadintake "example.com/leads/gen/leadintake/v1"
	"example.com/leads/gen/leadintake/v1/leadintakev1connect"
)

type client struct {
	leadintakev1connect.LeadIntakeServiceClient
	studio string
}

// reasonOf returns why the service refused; empty when it gave no reason, so that the outcome is unknown.
func reasonOf(err error) string {
	var refusal *connect.Error
	if errors.As(err, &refusal) {
		for _, detail := range refusal.Details() {
			value, _ := detail.Value()
			if info, ok := value.(*errdetails.ErrorInfo); ok && info.Domain == "leadintake" {
				return info.Reason
			}
		}
	}
	return ""
}

// create creates a lead. It retries the same request while the outcome is unknown; the key prevents duplicates.
func (c client) create(request *leadintake.CreateLeadRequest) (*leadintake.CreateLeadResponse, error) {
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := c.CreateLead(ctx, connect.NewRequest(request))
		cancel()
		if err == nil {
			return answer.Msg, nil
		}
		if reasonOf(err) != "" || attempt == 4 {
			return nil, err
		}
		time.Sleep(time.Duration(250*(1+rand.Float64())) * time.Millisecond << attempt)
	}
}

// all returns every lead, newest first, page by page.
func (c client) all() (leads []*leadintake.Lead, err error) {
	request := &leadintake.ListLeadsRequest{StudioId: c.studio, PageSize: 2}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		page, err := c.ListLeads(ctx, connect.NewRequest(request))
		cancel()
		if err != nil {
			return nil, err
		}
		leads = append(leads, page.Msg.Leads...)
		if page.Msg.NextPageToken == "" {
			return leads, nil
		}
		request.PageToken = page.Msg.NextPageToken
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
func presentToken(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if token := os.Getenv("CORE_TOKEN"); token != "" {
			request.Header().Set("Authorization", "Bearer "+token)
		}
		return next(ctx, request)
	}
}

func main() {
	// The core serves HTTP/2 without TLS.
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	leads := leadintakev1connect.NewLeadIntakeServiceClient(
		&http.Client{Transport: &http.Transport{Protocols: &protocols}},
		"http://"+os.Getenv("CORE_ADDRESS"),
		connect.WithGRPC(),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(presentToken)),
	)
	if err := (client{leads, os.Getenv("STUDIO_ID")}).run(); err != nil {
		fmt.Fprintln(os.Stderr, "failed", cmp.Or(reasonOf(err), err.Error()))
		os.Exit(1)
	}
}
