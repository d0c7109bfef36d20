<?php

declare(strict_types=1);

use LeadIntakePlugin\Outboxes;
use LeadIntakePlugin\Settings;

defined('WP_UNINSTALL_PLUGIN') || exit;

require __DIR__ . '/autoload.php';

Settings::forget();
// What was not delivered is somebody's enquiry: the table stays until nothing of that kind is in it.
Outboxes::dropIfDelivered();
