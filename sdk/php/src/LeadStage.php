<?php

declare(strict_types=1);

namespace LeadIntake;

/** Where a lead stands, as far as this release knows. */
enum LeadStage: string
{
    case New = 'new';
    case Contacted = 'contacted';
    case TrialBooked = 'trial_booked';
    case TrialAttended = 'trial_attended';
    case Won = 'won';
    case Lost = 'lost';
}
