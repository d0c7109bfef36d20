<?php

declare(strict_types=1);

namespace LeadIntake;

use LeadIntake\Internal\AsWritten;
use LeadIntake\Internal\CaptureRules;

/** A lead to be created. */
final class LeadCapture implements \JsonSerializable
{
    /**
     * @param string $displayName name of the person, of 1 to 160 characters
     * @param ?string $sourceId an enabled lead source of the key's studio; null or blank: none
     * @param ?string $note the visitor's message or other remarks, up to 2,000 characters; null or blank: none
     */
    public function __construct(
        #[\SensitiveParameter] public readonly string $displayName,
        #[\SensitiveParameter] public readonly Contact $contact,
        public readonly ?string $sourceId = null,
        #[\SensitiveParameter] public readonly ?string $note = null,
    ) {
    }

    /** @return array<string, mixed> the lead in the form of the API */
    public function jsonSerialize(): array
    {
        $optional = array_filter($this->optional(), static fn (?string $text): bool => $text !== null && !AsWritten::isBlank($text));
        return ['displayName' => $this->displayName, 'contact' => $this->contact] + $optional;
    }

    /**
     * Returns the faults of the lead, with the messages and keys of the service's $fields. If there are none, the service accepts the
     * lead, unless the studio lacks its source. Also refuses a name without a visible character, which the service accepts. Checks
     * the lead as an outbox stores it, with one character for each line break of the note. Call it before you thank a visitor.
     *
     * @return array<string, list<string>> by path, such as `contact.value`
     */
    public function faults(): array
    {
        return array_map(static fn (array $fault): array => [$fault[0]], $this->all());
    }

    /**
     * Returns the codes of the faults, such as `wrong_length`, with the keys of faults(), for a page in another language.
     *
     * @return array<string, list<string>>
     */
    public function faultCodes(): array
    {
        return array_map(static fn (array $fault): array => [$fault[1]], $this->all());
    }

    /** @return array<string, ?string> */
    private function optional(): array
    {
        return array_intersect_key(get_object_vars($this), array_flip(CaptureRules::OPTIONAL_TEXTS));
    }

    /** @return array<string, array{string, string}> message and code by path */
    private function all(): array
    {
        $texts = ['displayName' => $this->displayName, $this->contact->type => $this->contact->value];
        $texts += AsWritten::of(array_filter($this->optional(), is_string(...)));
        $faults = [];
        foreach ($texts as $name => $text) {
            foreach (CaptureRules::RULES[$name] as [$pattern, $message, $code]) {
                if (preg_match($pattern, $text) !== 1) {
                    $faults[$name === $this->contact->type ? 'contact.value' : $name] = [$message, $code];
                    break;
                }
            }
        }
        return $faults;
    }
}
