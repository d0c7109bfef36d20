<?php

/**
 * Plugin Name: Lead Intake
 * Description: Sends what visitors enter as leads into one studio of the CRM. Each is stored first, in the website's own database, and sent later: none is lost, none is doubled.
 * Version: 1.0.0
 * Requires at least: 6.1
 * Requires PHP: 8.1
 * Text Domain: lead-intake
 */

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

require __DIR__ . '/autoload.php';

register_activation_hook(__FILE__, Delivery::activate(...));
register_deactivation_hook(__FILE__, Delivery::deactivate(...));

Delivery::register();
Form::register();
SettingsPage::register();
LeadsPage::register();
Troubles::register();
