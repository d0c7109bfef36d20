<?php

/**
 * Plugin Name: Lead Intake
 * Description: Sends what visitors enter as leads into one studio of the CRM. Each is stored first, in the website's own database, and sent later: none is lost, none is doubled.
 * Version: 0.0.0
 * Requires at least: 6.1
 * Requires PHP: 8.1
 * Author: Lead Intake
 * License: GPL-2.0-or-later
 * License URI: https://www.gnu.org/licenses/gpl-2.0.html
 * Update URI: https://lead-intake.invalid/wordpress
 * Text Domain: lead-intake
 * Domain Path: /languages
 */

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

require __DIR__ . '/autoload.php';

Setup::register(__FILE__);
Delivery::register();
Form::register();
SettingsPage::register(__FILE__);
FormsPage::register();
LeadsPage::register();
Privacy::register();
FormPlugins::register();
Troubles::register();
Update::register(__FILE__);
