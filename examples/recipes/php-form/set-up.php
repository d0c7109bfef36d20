<?php

// Creates the tables if missing.

declare(strict_types=1);

require __DIR__ . '/website.php';

database()->exec('CREATE TABLE IF NOT EXISTS enquiries (received_at BIGINT NOT NULL)');
outbox()->setUp();
