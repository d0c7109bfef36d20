<?php

declare(strict_types=1);

// Loads the plugin's own classes and those of the PHP client, which the build places beside them.
spl_autoload_register(static function (string $class): void {
    foreach (['LeadIntakePlugin\\' => 'src', 'LeadIntake\\' => 'client'] as $namespace => $folder) {
        $file = __DIR__ . "/$folder/" . str_replace('\\', '/', substr($class, strlen($namespace))) . '.php';
        if (str_starts_with($class, $namespace) && is_file($file)) {
            require $file;
        }
    }
});
