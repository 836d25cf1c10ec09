"""`mainspring people` and `login-link` as a person meets them."""


def test_a_login_link_leads_to_where_people_reach_the_server(command):
    command("people", "create", "ann", "--role", "admin")

    here = command("login-link", "ann")
    behind = command("login-link", "ann", MAINSPRING_PUBLIC_URL="https://jobs.example.com/ms/")
    named = command("login-link", "ann", "--server", "http://other.test")

    assert here.stdout.startswith("http://127.0.0.1:8080/login?code=msk_")
    assert behind.stdout.startswith("https://jobs.example.com/ms/login?code=msk_")
    assert named.stdout.startswith("http://other.test/login?code=msk_")
