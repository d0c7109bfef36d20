Rails.application.routes.draw do
  get "contact", to: "contact_requests#new"
  post "contact", to: "contact_requests#create"
  get "thanks", to: "contact_requests#thanks"
  match "office/leads", to: "leads#page", via: [:get, :post]
end
