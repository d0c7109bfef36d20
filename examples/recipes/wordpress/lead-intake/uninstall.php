<?php

declare(strict_types=1);

use LeadIntakePlugin\Outboxes;
use LeadIntakePlugin\Settings;

defined('WP_UNINSTALL_PLUGIN') || exit;

require __DIR__ . '/autoload.php';

Settings::forget();
// An undelivered lead is a person's enquiry: the table stays until it contains none.
Outboxes::dropIfDelivered();
