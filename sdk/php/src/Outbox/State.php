<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The state of a lead in the outbox. */
enum State: string
{
    /** The lead will be sent, now or later. */
    case Waiting = 'waiting';

    /** The service has the lead. Its data is erased, unless its first attempt was answered with an earlier lead. */
    case Delivered = 'delivered';

    /** The contact already had an open lead: a normal outcome. Its data is erased, unless it has a note. */
    case AlreadyOpen = 'already_open';

    /** The service refused the lead: it needs a person's attention. Its data is kept. */
    case Refused = 'refused';

    /** A person discarded the lead. Its data is erased. */
    case Discarded = 'discarded';
}
