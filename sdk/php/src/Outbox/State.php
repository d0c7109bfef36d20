<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** What became of a lead in the outbox. */
enum State: string
{
    /** It is still to be sent, now or later. */
    case Waiting = 'waiting';

    /** The service has it. Its data are erased. */
    case Delivered = 'delivered';

    /** The contact had an open lead already: a normal outcome. Its data are erased. */
    case AlreadyOpen = 'already_open';

    /** The service does not take it as it is: a person must look. Its data are kept. */
    case Refused = 'refused';

    /** A person has given it up. Its data are erased. */
    case Discarded = 'discarded';
}
