from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from lead_intake.outbox import key_for

from .forms import ContactForm
from .outbox import outbox


# Anybody may send this form, so a forged request gains nothing. With a token, a visitor whose cookie is gone would lose the text.
@csrf_exempt
@never_cache  # each visit has a key of its own, even after going back
def contact(request: HttpRequest) -> HttpResponse:
    form = ContactForm(request.POST or None)
    if not form.is_valid():
        return render(request, "leads/contact.html", {"form": form})
    with transaction.atomic():
        # Store other data of the visit here.
        capture = form.to_capture()
        # The same page with the same data is one lead; with other data, it is another.
        outbox.add(connection, capture, idempotency_key=key_for(form.cleaned_data["key"], capture))
    return redirect("leads:thanks")


def thanks(request: HttpRequest) -> HttpResponse:
    return render(request, "leads/thanks.html")
