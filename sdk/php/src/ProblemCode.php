<?php

declare(strict_types=1);

namespace LeadIntake;

/** The problem codes known to this release. */
enum ProblemCode: string
{
    case IntegrationInvalidRequest = 'integration_invalid_request';
    case IntegrationSourceInvalid = 'integration_source_invalid';
    case IntegrationKeyInvalid = 'integration_key_invalid';
    case SubscriptionSuspended = 'subscription_suspended';
    case IntegrationScopeForbidden = 'integration_scope_forbidden';
    case IntegrationIssuerForbidden = 'integration_issuer_forbidden';
    case IntegrationLeadNotFound = 'integration_lead_not_found';
    case IntegrationIdempotencyConflict = 'integration_idempotency_conflict';
    case IntegrationLeadAlreadyOpen = 'integration_lead_already_open';
    case IntegrationRateLimited = 'integration_rate_limited';
    case IntegrationRateUnavailable = 'integration_rate_unavailable';
    case RouteNotFound = 'route_not_found';
    case MethodNotAllowed = 'method_not_allowed';
    case InternalError = 'internal_error';
    case IntegrationUnavailable = 'integration_unavailable';
}
