<?php

declare(strict_types=1);

namespace LeadIntake;

/** Whether a request has written its lead, over all of its attempts. A request that reads writes nothing. */
enum Written: string
{
    /** Nothing was written. */
    case No = 'no';

    /** An attempt may have written the lead. */
    case Unknown = 'unknown';
}
