-- The key that signs the cookie of a login through a provider, which holds what used to be a row of
-- login_keys for every login that was begun. From now on a row there is a login that was completed.
--
-- works with: 0001

insert into mainspring.installation_keys (name, key)
select 'cookies', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                         || uuid_send(gen_random_uuid()))
               || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                         || uuid_send(gen_random_uuid()));
