// Uses the client that oapi-codegen makes, and prints the results as JSON.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"example.com/use-client/leadintake"
	"github.com/google/uuid"
)

var ctx = context.Background()

func clientWith(key, url string) *leadintake.ClientWithResponses {
	present := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv(key))
		return nil
	}
	return must(leadintake.NewClientWithResponses(os.Getenv(url), leadintake.WithRequestEditorFn(present)))
}

// A lead as plain values, with times in milliseconds since 1970.
func leadFields(lead leadintake.Lead) map[string]any {
	return map[string]any{
		"id": lead.Id, "displayName": lead.DisplayName, "stage": lead.Stage, "sourceId": lead.SourceId, "note": lead.Note,
		"createdAt": lead.CreatedAt.UnixMilli(), "updatedAt": lead.UpdatedAt.UnixMilli(),
	}
}

func refusal(response *http.Response, problems ...*leadintake.ProblemDetails) map[string]any {
	for _, problem := range problems {
		if problem != nil {
			return map[string]any{
				"status": response.StatusCode, "code": problem.Code, "fields": problem.Fields, "requestId": problem.RequestId,
				"retryAfter": headerOf(response, "Retry-After"),
			}
		}
	}
	return nil
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
	var contact leadintake.Contact
	must(0, contact.FromEmailContact(leadintake.EmailContact{Type: "email", Value: value}))
	return contact
}

func phone(value string) leadintake.Contact {
	var contact leadintake.Contact
	must(0, contact.FromPhoneContact(leadintake.PhoneContact{Type: "phone", Value: value}))
	return contact
}

func captured(contact leadintake.Contact) leadintake.LeadCapture {
	return leadintake.LeadCapture{DisplayName: "Zoë 🦉", Contact: contact}
}

func create(key, url string, capture leadintake.LeadCapture, idempotencyKey string) *leadintake.CreateLeadResponse {
	parameters := leadintake.CreateLeadParams{IdempotencyKey: idempotencyKey}
	return must(clientWith(key, url).CreateLeadWithResponse(ctx, &parameters, capture))
}

func refusedCreation(key, url string, capture leadintake.LeadCapture, idempotencyKey string) map[string]any {
	answer := create(key, url, capture, idempotencyKey)
	return refusal(
		answer.HTTPResponse, answer.ApplicationproblemJSON400, answer.ApplicationproblemJSON401, answer.ApplicationproblemJSON402,
		answer.ApplicationproblemJSON403, answer.ApplicationproblemJSON409, answer.ApplicationproblemJSON429,
	)
}

func main() {
	byEmail := captured(email("zoë@straße.example"))
	note := "a\nb"
	byEmail.Note = &note
	byPhone := captured(phone("+49 30 123456"))
	source := os.Getenv("SOURCE_ID")
	byPhone.SourceId = &source
	other := captured(email("other@example.org"))
	letters := captured(phone("call me"))
	foreign := captured(email("other@example.org"))
	unknown := uuid.NewString()
	foreign.SourceId = &unknown

	studio := clientWith("KEY", "URL")
	idempotencyKey := uuid.NewString()
	created := create("KEY", "URL", byEmail, idempotencyKey)
	replayed := create("KEY", "URL", byEmail, idempotencyKey)
	phoned := create("KEY", "URL", byPhone, uuid.NewString())
	read := must(studio.GetLeadWithResponse(ctx, created.JSON201.Lead.Id, nil))

	limit := 1
	pages := [][]string{}
	for parameters := (leadintake.ListLeadsParams{Limit: &limit}); ; {
		page := must(studio.ListLeadsWithResponse(ctx, &parameters)).JSON200
		ids := []string{}
		for _, lead := range page.Leads {
			ids = append(ids, lead.Id)
		}
		pages = append(pages, ids)
		if page.NextCursor == nil {
			break
		}
		parameters.Cursor = page.NextCursor
	}

	none := "none"
	badCursor := must(studio.ListLeadsWithResponse(ctx, &leadintake.ListLeadsParams{Cursor: &none}))
	unknownLead := must(studio.GetLeadWithResponse(ctx, uuid.NewString(), nil))
	create("SCARCE_KEY", "SCARCE_URL", other, uuid.NewString())

	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"created":  leadFields(created.JSON201.Lead),
		"isReplay": []*string{headerOf(created.HTTPResponse, "Idempotent-Replayed"), headerOf(replayed.HTTPResponse, "Idempotent-Replayed")},
		"replayed": leadFields(replayed.JSON201.Lead),
		"byPhone":  leadFields(phoned.JSON201.Lead),
		"read":     leadFields(read.JSON200.Lead),
		"pages":    pages,
		"refusals": map[string]any{
			"invalid contact": refusedCreation("KEY", "URL", letters, uuid.NewString()),
			"invalid cursor":  refusal(badCursor.HTTPResponse, badCursor.ApplicationproblemJSON400),
			"invalid source":  refusedCreation("KEY", "URL", foreign, uuid.NewString()),
			"invalid key":     refusedCreation("INVALID_KEY", "URL", other, uuid.NewString()),
			"suspended":       refusedCreation("SUSPENDED_KEY", "URL", other, uuid.NewString()),
			"other scope":     refusedCreation("READING_KEY", "URL", other, uuid.NewString()),
			"issuer":          refusedCreation("FORMER_OWNER_KEY", "URL", other, uuid.NewString()),
			"unknown lead":    refusal(unknownLead.HTTPResponse, unknownLead.ApplicationproblemJSON404),
			"other data":      refusedCreation("KEY", "URL", other, idempotencyKey),
			"already open":    refusedCreation("KEY", "URL", byEmail, uuid.NewString()),
			"used up":         refusedCreation("SCARCE_KEY", "SCARCE_URL", other, uuid.NewString()),
		},
	}))
}
