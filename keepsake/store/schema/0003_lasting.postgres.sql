UPDATE bank_seq SET seen_seq = (j.input::JSON ->> 'seq')::BIGINT, seen_id = (j.input::JSON ->> 'id')::BIGINT
FROM jobs j WHERE j.org = bank_seq.org AND j.bank = bank_seq.bank AND j.kind = 'consolidate' AND j.key = ''
    AND j.input <> '';
