// Uses the client that openapi-generator makes for Go, and prints what came of it as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"

	"example.com/your/leadintake"
	"github.com/google/uuid"
)

// The API as a key opens it; both are names in the environment.
type caller struct {
	api *leadintake.LeadsAPIService
	ctx context.Context
}

func callerWith(key, url string) caller {
	configuration := leadintake.NewConfiguration()
	configuration.Servers = leadintake.ServerConfigurations{{URL: os.Getenv(url)}}
	ctx := context.WithValue(context.Background(), leadintake.ContextAccessToken, os.Getenv(key))
	return caller{leadintake.NewAPIClient(configuration).LeadsAPI, ctx}
}

func (c caller) create(capture leadintake.LeadCapture, idempotencyKey string) (*leadintake.LeadResponse, *http.Response, error) {
	return c.api.CreateLead(c.ctx).IdempotencyKey(idempotencyKey).LeadCapture(capture).Execute()
}

// A lead in plain values; times as milliseconds since 1970.
func leadFields(lead leadintake.Lead) map[string]any {
	return map[string]any{
		"id": lead.Id, "displayName": lead.DisplayName, "stage": lead.Stage, "sourceId": lead.SourceId, "note": lead.Note,
		"createdAt": lead.CreatedAt.UnixMilli(), "updatedAt": lead.UpdatedAt.UnixMilli(),
	}
}

// What the problem says that a call has failed with.
func refusal(response *http.Response, err error) map[string]any {
	var failure *leadintake.GenericOpenAPIError
	if !errors.As(err, &failure) {
		return nil
	}
	problem := failure.Model().(leadintake.ProblemDetails)
	return map[string]any{
		"status": response.StatusCode, "code": problem.Code, "fields": problem.Fields, "requestId": problem.RequestId,
		"retryAfter": headerOf(response, "Retry-After"),
	}
}

func headerOf(response *http.Response, name string) *string {
	if values := response.Header.Values(name); len(values) > 0 {
		return &values[0]
	}
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func email(value string) leadintake.Contact {
	return leadintake.EmailContactAsContact(leadintake.NewEmailContact("email", value))
}

func phone(value string) leadintake.Contact {
	return leadintake.PhoneContactAsContact(leadintake.NewPhoneContact("phone", value))
}

func captured(contact leadintake.Contact) leadintake.LeadCapture {
	return *leadintake.NewLeadCapture("Zoë 🦉", contact)
}

func main() {
	byEmail := captured(email("zoë@straße.example"))
	byEmail.SetNote("a\nb")
	byPhone := captured(phone("+49 30 123456"))
	byPhone.SetSourceId(os.Getenv("SOURCE_ID"))
	other := captured(email("other@example.org"))
	letters := captured(phone("call me"))
	foreign := captured(email("other@example.org"))
	foreign.SetSourceId(uuid.NewString())

	studio := callerWith("KEY", "URL")
	idempotencyKey := uuid.NewString()
	created, createdBy, err := studio.create(byEmail, idempotencyKey)
	must(created, err)
	replayed, replayedBy, err := studio.create(byEmail, idempotencyKey)
	must(replayed, err)
	phoned, _, err := studio.create(byPhone, uuid.NewString())
	must(phoned, err)
	read, _, err := studio.api.GetLead(studio.ctx, created.Lead.Id).Execute()
	must(read, err)

	pages := [][]string{}
	for request := studio.api.ListLeads(studio.ctx).Limit(1); ; {
		page, _, err := request.Execute()
		must(page, err)
		ids := []string{}
		for _, lead := range page.Leads {
			ids = append(ids, lead.Id)
		}
		pages = append(pages, ids)
		cursor := page.NextCursor.Get()
		if cursor == nil {
			break
		}
		request = request.Cursor(*cursor)
	}

	refusedCreation := func(key, url string, capture leadintake.LeadCapture, idempotencyKey string) map[string]any {
		_, response, err := callerWith(key, url).create(capture, idempotencyKey)
		return refusal(response, err)
	}
	_, cursorBy, cursorErr := studio.api.ListLeads(studio.ctx).Cursor("none").Execute()
	_, unknownBy, unknownErr := studio.api.GetLead(studio.ctx, uuid.NewString()).Execute()
	refusedCreation("SCARCE_KEY", "SCARCE_URL", other, uuid.NewString())

	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"created":  leadFields(created.Lead),
		"isReplay": []*string{headerOf(createdBy, "Idempotent-Replayed"), headerOf(replayedBy, "Idempotent-Replayed")},
		"replayed": leadFields(replayed.Lead),
		"byPhone":  leadFields(phoned.Lead),
		"read":     leadFields(read.Lead),
		"pages":    pages,
		"refusals": map[string]any{
			"invalid contact": refusedCreation("KEY", "URL", letters, uuid.NewString()),
			"invalid cursor":  refusal(cursorBy, cursorErr),
			"invalid source":  refusedCreation("KEY", "URL", foreign, uuid.NewString()),
			"invalid key":     refusedCreation("INVALID_KEY", "URL", other, uuid.NewString()),
			"suspended":       refusedCreation("SUSPENDED_KEY", "URL", other, uuid.NewString()),
			"other scope":     refusedCreation("READING_KEY", "URL", other, uuid.NewString()),
			"issuer":          refusedCreation("FORMER_OWNER_KEY", "URL", other, uuid.NewString()),
			"unknown lead":    refusal(unknownBy, unknownErr),
			"other data":      refusedCreation("KEY", "URL", other, idempotencyKey),
			"already open":    refusedCreation("KEY", "URL", byEmail, uuid.NewString()),
			"used up":         refusedCreation("SCARCE_KEY", "SCARCE_URL", other, uuid.NewString()),
		},
	}))
}
