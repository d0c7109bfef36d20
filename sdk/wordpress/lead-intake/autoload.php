<?php

declare(strict_types=1);

defined('ABSPATH') || exit;

// Loads the plugin's own classes and the PHP client. The build puts the client into the plugin's namespace, because another plugin may have
// another release of it.
spl_autoload_register(static function (string $class): void {
    foreach (['LeadIntakePlugin\\Client\\' => 'client', 'LeadIntakePlugin\\' => 'src'] as $namespace => $folder) {
        if (str_starts_with($class, $namespace)) {
            $file = __DIR__ . "/$folder/" . str_replace('\\', '/', substr($class, strlen($namespace))) . '.php';
            is_file($file) && require $file;
            return;
        }
    }
});
