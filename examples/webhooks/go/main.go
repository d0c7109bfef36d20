// Receives webhooks of Lead Intake on PORT, behind a proxy that terminates TLS. WEBHOOK_SECRET is a secret of the endpoint.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type message struct {
	Type string
	Data struct {
		LeadID, Revision string
		Kinds            []string
	}
}

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	var mutex sync.Mutex
	// Replace this with a table in your database that has the highest revision of each lead.
	revisions := map[string]int64{}

	http.HandleFunc("POST /", func(response http.ResponseWriter, request *http.Request) {
		// Verify the bytes as they came: parsed and written again, they would have another signature.
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
		if err != nil || webhook.Verify(body, request.Header) != nil {
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		var got message
		if json.Unmarshal(body, &got) != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		revision, _ := strconv.ParseInt(got.Data.Revision, 10, 64)
		mutex.Lock()
		defer mutex.Unlock()
		// A change may come twice or late. The first revision of a lead is 0.
		if known, isKnown := revisions[got.Data.LeadID]; !isKnown || known < revision {
			revisions[got.Data.LeadID] = revision
			fmt.Println(got.Type, got.Data.LeadID, got.Data.Revision, strings.Join(got.Data.Kinds, ","))
		}
		// Answer only now: a change that was answered with 2xx does not come again.
		response.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
