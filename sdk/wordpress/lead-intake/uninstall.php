<?php

declare(strict_types=1);

use LeadIntakePlugin\Setup;

defined('WP_UNINSTALL_PLUGIN') || exit;

require __DIR__ . '/autoload.php';

Setup::uninstall();
