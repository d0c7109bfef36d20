<?php

declare(strict_types=1);

namespace LeadIntake;

/** Whether any attempt of a request may have written its lead. Always No for reads. */
enum Written: string
{
    /** Nothing was written. */
    case No = 'no';

    /** An attempt may have written the lead. */
    case Unknown = 'unknown';
}
