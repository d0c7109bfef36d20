<?php

declare(strict_types=1);

namespace LeadIntake;

/** The stages of a lead known to this release. */
enum LeadStage: string
{
    case New = 'new';
    case Contacted = 'contacted';
    case TrialBooked = 'trial_booked';
    case TrialAttended = 'trial_attended';
    case Won = 'won';
    case Lost = 'lost';
}
