<?php

// Shared by the pages and the command.

declare(strict_types=1);

use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;

require __DIR__ . '/vendor/autoload.php';

/** Returns the website's own database: SQLite, MySQL, MariaDB or PostgreSQL, by the address in DATABASE. */
function database(): PDO
{
    static $database;
    return $database ??= new PDO(
        (string) getenv('DATABASE'),
        getenv('DATABASE_USER') ?: null,
        getenv('DATABASE_PASSWORD') ?: null,
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION],
    );
}

/** The outbox. Its table is named after this website, because another website in the same database would send its leads. */
function outbox(): Outbox
{
    static $outbox;
    return $outbox ??= new Outbox(database(), 'example_com_leads');
}

function client(float $deadlineSeconds): LeadIntakeClient
{
    return new LeadIntakeClient((string) getenv('LEAD_INTAKE_URL'), (string) getenv('LEAD_INTAKE_KEY'), $deadlineSeconds);
}
