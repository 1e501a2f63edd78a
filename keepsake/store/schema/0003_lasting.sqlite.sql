UPDATE bank_seq SET seen_seq = json_extract(j.input, '$.seq'), seen_id = json_extract(j.input, '$.id')
FROM jobs j WHERE j.org = bank_seq.org AND j.bank = bank_seq.bank AND j.kind = 'consolidate' AND j.key = ''
    AND j.input <> '';
