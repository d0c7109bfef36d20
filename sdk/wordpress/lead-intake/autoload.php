<?php

declare(strict_types=1);

defined('ABSPATH') || exit;

// Loads the plugin's own classes and those of the PHP client, which the build places beside them in a namespace of the plugin, so that
// another plugin may bring another release of the client.
spl_autoload_register(static function (string $class): void {
    foreach (['LeadIntakePlugin\\Client\\' => 'client', 'LeadIntakePlugin\\' => 'src'] as $namespace => $folder) {
        if (str_starts_with($class, $namespace)) {
            $file = __DIR__ . "/$folder/" . str_replace('\\', '/', substr($class, strlen($namespace))) . '.php';
            is_file($file) && require $file;
            return;
        }
    }
});
