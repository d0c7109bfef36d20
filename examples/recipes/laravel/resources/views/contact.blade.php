<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Contact</title>
<h1>Contact</h1>
@foreach ($faults as $field => [$fault])
    <p role="alert">{{ ['form' => 'It', 'displayName' => 'Name', 'contact.value' => 'Email', 'note' => 'Message'][$field] }} {{ $fault }}.</p>
@endforeach
<form method="post" action="{{ url('contact') }}">
    <input type="hidden" name="page" value="{{ $form['page'] }}">
    <p><label>Name <input name="name" maxlength="160" required value="{{ $form['name'] }}"></label></p>
    <p><label>Email <input name="email" inputmode="email" maxlength="254" required value="{{ $form['email'] }}"></label></p>
    <p><label>Message <textarea name="message" maxlength="2000">
{{ $form['message'] }}</textarea></label></p>
    <p><button>Send</button></p>
</form>
</html>
